// Draws the report's charts from the JSON blocks in the page. Everything that
// comes from an experiment reaches the document as text, never as markup.
(function () {
  "use strict";

  var root = document.documentElement;
  var charts = []; // {block, element, instance}

  // --- numbers and times ---------------------------------------------------

  function digits(v) {
    var a = Math.abs(v);
    return a >= 100 || a === 0 ? 0 : a >= 10 ? 1 : a >= 1 ? 2 : a >= 0.1 ? 3 : 4;
  }
  function number(v) {
    if (v === null || v === undefined || isNaN(v)) return "–";
    return v.toLocaleString("en-US", { maximumFractionDigits: digits(v) });
  }
  var weekdays = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
  function two(n) { return (n < 10 ? "0" : "") + n; }
  function clockTime(ms) {
    var d = new Date(ms);
    return two(d.getUTCHours()) + ":" + two(d.getUTCMinutes());
  }
  var dayMs = 86400000;
  // dayOf counts days as the experiment does: the first one is day 1.
  function dayOf(ms, block) { return Math.floor(ms / dayMs) - Math.floor(block.start / dayMs) + 1; }
  function moment(ms, block) {
    return weekdays[new Date(ms).getUTCDay()] + " " + clockTime(ms) + " (day " + dayOf(ms, block) + ")";
  }

  // --- data ----------------------------------------------------------------

  function times(block) {
    if (block.t) return block.t;
    var t = [];
    for (var i = 0; i < block.n; i++) t.push(block.t0 + i * (block.dt || 0));
    return t;
  }
  function dataset(block) {
    var source = { t: block.times }, dimensions = [{ name: "t", type: "time" }];
    block.columns.forEach(function (c, i) {
      source["c" + i] = c.values;
      dimensions.push({ name: "c" + i, type: "number" });
    });
    return { source: source, dimensions: dimensions };
  }
  // row is the last row that begins at or before ms.
  function row(block, ms) {
    var lo = 0, hi = block.times.length - 1;
    while (lo < hi) {
      var mid = (lo + hi + 1) >> 1;
      if (block.times[mid] <= ms) lo = mid; else hi = mid - 1;
    }
    return lo;
  }

  // --- options -------------------------------------------------------------

  var colourKeys = { color: 1, borderColor: 1, backgroundColor: 1, fillerColor: 1 };

  function formatters(block) {
    return {
      "@number": number,
      "@time": function (ms) {
        var d = new Date(ms);
        return d.getUTCHours() || d.getUTCMinutes() ? clockTime(ms) : weekdays[d.getUTCDay()];
      },
      "@day": function (ms) {
        var d = new Date(ms);
        return d.getUTCHours() || d.getUTCMinutes() ? clockTime(ms) : "day " + dayOf(ms, block);
      },
      "@tip": function (params) { return tip(block, params[0].axisValue); }
    };
  }

  // resolve copies an option and replaces its tokens: colours by their value in
  // the current theme, formatters by functions.
  function resolve(value, key, style, format) {
    if (Array.isArray(value)) return value.map(function (v) { return resolve(v, key, style, format); });
    if (value && typeof value === "object") {
      var out = {};
      Object.keys(value).forEach(function (k) { out[k] = resolve(value[k], k, style, format); });
      return out;
    }
    if (typeof value !== "string") return value;
    if (colourKeys[key] && value.indexOf("--") === 0) return style.getPropertyValue(value).trim();
    if (key === "formatter" && format[value]) return format[value];
    if (key === "fontFamily" && value === "inherit") return getComputedStyle(document.body).fontFamily;
    return value;
  }

  // pixelsPerLabel is the room that a label of the time axis needs.
  var pixelsPerLabel = 54;
  var minuteMs = 60000, hourMs = 60 * minuteMs;
  var steps = [1, 2, 5, 10, 15, 30].map(function (m) { return m * minuteMs; })
    .concat([1, 2, 3, 4, 6, 12].map(function (h) { return h * hourMs; }))
    .concat([1, 2, 5, 7, 10, 30, 100, 365].map(function (d) { return d * dayMs; }));

  // ticks are the labels of the time axis between two instants: whole steps from
  // the midnight before the experiment, as many as there is room for.
  function ticks(block, from, to) {
    var grid = block.option.grid[0];
    var room = document.getElementById(block.id).clientWidth - Number(grid.left) - Number(grid.right);
    var most = Math.max(2, Math.floor(room / pixelsPerLabel)), step = steps[steps.length - 1];
    for (var i = 0; i < steps.length; i++) {
      if ((to - from) / steps[i] <= most) { step = steps[i]; break; }
    }
    var origin = Math.floor(block.start / dayMs) * dayMs, out = [];
    for (var t = origin + Math.ceil((from - origin) / step) * step; t <= to; t += step) out.push(t);
    return out;
  }
  function setTicks(axis, values) {
    axis.axisLabel.customValues = values;
    axis.axisTick.customValues = values;
  }

  function option(block) {
    var style = getComputedStyle(root);
    var o = resolve(block.option, "", style, formatters(block));
    o.dataset = dataset(block);
    setTicks(o.xAxis[0], ticks(block, block.shown ? block.shown[0] : o.xAxis[0].min, block.shown ? block.shown[1] : o.xAxis[0].max));
    if (block.shown && o.dataZoom) {
      o.dataZoom[0].startValue = block.shown[0];
      o.dataZoom[0].endValue = block.shown[1];
    }
    if (root.classList.contains("print") && o.dataZoom && o.dataZoom[0].show) {
      o.grid[0].bottom = o.dataZoom[0].height + 4;
      o.dataZoom[0].show = false;
    }
    o.tooltip.backgroundColor = style.getPropertyValue("--panel").trim();
    o.tooltip.borderColor = style.getPropertyValue("--rule").trim();
    o.tooltip.textStyle = { color: style.getPropertyValue("--ink").trim() };
    return o;
  }

  // --- tooltip and tables --------------------------------------------------

  function element(name, text, className) {
    var e = document.createElement(name);
    if (text !== undefined) e.textContent = text;
    if (className) e.className = className;
    return e;
  }
  function tip(block, ms) {
    var i = row(block, ms), box = element("div", undefined, "tip"), table = element("table");
    box.appendChild(element("h5", moment(block.times[i], block)));
    block.columns.forEach(function (c) {
      if (c.hidden || c.values[i] === null || c.values[i] === undefined) return;
      var tr = element("tr"), name = element("td"), dot = element("i");
      dot.style.background = c.colour ? "var(" + c.colour + ")" : "transparent";
      name.appendChild(dot);
      name.appendChild(document.createTextNode(c.label));
      tr.appendChild(name);
      tr.appendChild(element("td", number(c.values[i]) + (c.unit ? " " + c.unit : ""), "num"));
      table.appendChild(tr);
    });
    box.appendChild(table);
    return box;
  }
  function fillTable(block, target) {
    var shown = block.columns.filter(function (c) { return !c.hidden; });
    var table = element("table"), head = element("tr"), body = element("tbody"), thead = element("thead");
    head.appendChild(element("th", "from"));
    shown.forEach(function (c) { head.appendChild(element("th", c.label + (c.unit ? " (" + c.unit + ")" : ""), "num")); });
    thead.appendChild(head);
    for (var i = 0; i < block.times.length; i++) {
      var tr = element("tr");
      tr.appendChild(element("td", moment(block.times[i], block)));
      shown.forEach(function (c) { tr.appendChild(element("td", number(c.values[i]), "num")); });
      body.appendChild(tr);
    }
    table.appendChild(thead);
    table.appendChild(body);
    target.appendChild(table);
  }

  // --- zoom ----------------------------------------------------------------

  // zoomTo acts on the chart with the slider; echarts.connect carries it on.
  function zoomTo(from, to) {
    var lead = charts.filter(function (c) { return c.block.group === "run"; })[0];
    if (lead) lead.instance.dispatchAction({ type: "dataZoom", dataZoomId: "zoom", startValue: from, endValue: to });
  }
  function zoomAll(block) {
    var x = block.option.xAxis[0];
    zoomTo(x.min, x.max);
  }
  // dragZoom zooms to the span over which a mouse is dragged.
  function dragZoom(c) {
    var from = null, box = null;
    function inside(e) {
      var r = c.element.getBoundingClientRect();
      return { x: e.clientX - r.left, y: e.clientY - r.top };
    }
    c.element.addEventListener("pointerdown", function (e) {
      var p = inside(e);
      if (e.pointerType !== "mouse" || e.button !== 0 || !c.instance.containPixel("grid", [p.x, p.y])) return;
      from = p.x;
    });
    window.addEventListener("pointermove", function (e) {
      if (from === null) return;
      var x = inside(e).x;
      if (!box && Math.abs(x - from) < 6) return;
      if (!box) box = c.element.appendChild(element("div", undefined, "drag"));
      box.style.left = Math.min(from, x) + "px";
      box.style.width = Math.abs(x - from) + "px";
      box.style.top = "34px";
      box.style.bottom = "26px";
    });
    window.addEventListener("pointerup", function (e) {
      if (from === null) return;
      var ends = [from, inside(e).x].sort(function (a, b) { return a - b; });
      from = null;
      if (!box) return;
      box.remove();
      box = null;
      var axis = c.block.option.xAxis[0];
      var t = ends.map(function (x) { return c.instance.convertFromPixel({ xAxisIndex: 0 }, x); });
      zoomTo(Math.max(axis.min, t[0]), Math.min(axis.max, t[1]));
    });
    c.element.addEventListener("dblclick", function () { zoomAll(c.block); });
  }

  // --- life ----------------------------------------------------------------

  function draw() {
    charts.forEach(function (c) { c.instance.setOption(option(c.block), { notMerge: true }); });
  }
  function fitAll() {
    charts.forEach(function (c) { c.instance.resize(); });
    draw();
  }
  // Zooming moves the time axis; its labels follow once it rests.
  var zoomed = 0;
  function followZoom(c) {
    c.instance.on("datazoom", function () {
      var z = c.instance.getOption().dataZoom[0];
      c.block.shown = [z.startValue, z.endValue];
      clearTimeout(zoomed);
      zoomed = setTimeout(function () {
        charts.forEach(function (c) {
          if (!c.block.shown) return;
          var axis = { axisLabel: {}, axisTick: {} };
          setTicks(axis, ticks(c.block, c.block.shown[0], c.block.shown[1]));
          c.instance.setOption({ xAxis: [axis] });
        });
      }, 60);
    });
  }

  document.querySelectorAll("script.chart-data").forEach(function (script) {
    var block = JSON.parse(script.textContent);
    block.times = times(block);
    var target = document.getElementById(block.id);
    var c = { block: block, element: target, instance: echarts.init(target, null, { renderer: "svg" }) };
    if (block.group) c.instance.group = block.group;
    charts.push(c);
    if (block.group === "run") {
      dragZoom(c);
      followZoom(c);
    }
  });
  draw();
  echarts.connect("run");
  echarts.connect("budget");

  document.querySelectorAll("details.data").forEach(function (d) {
    d.addEventListener("toggle", function () {
      var target = d.querySelector(".scroll");
      if (!d.open || target.firstChild) return;
      var c = charts.filter(function (c) { return c.block.id === d.dataset.chart; })[0];
      fillTable(c.block, target);
    });
  });
  document.querySelectorAll(".zooms button").forEach(function (b) {
    b.addEventListener("click", function () { zoomTo(Number(b.dataset.from), Number(b.dataset.to)); });
  });

  var resized = 0;
  window.addEventListener("resize", function () {
    clearTimeout(resized);
    resized = setTimeout(fitAll, 80);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  // On paper: the light colours, and charts as wide as the sheet's columns.
  matchMedia("print").addEventListener("change", function (e) {
    root.classList.toggle("print", e.matches);
    fitAll();
  });
  root.dataset.charts = String(charts.length);
})();
