// Draws the report's charts from the JSON blocks in the page. Everything that
// comes from an experiment reaches the document as text, never as markup.
(function () {
  "use strict";

  var root = document.documentElement;
  var charts = []; // {block, element, instance, width, height}

  // --- numbers and times ---------------------------------------------------

  function digits(v) {
    var a = Math.abs(v);
    return a >= 100 || a === 0 ? 0 : a >= 10 ? 1 : a >= 1 ? 2 : a >= 0.1 ? 3 : 4;
  }
  var formats = []; // by digits after the point: a formatter is dear to make
  function number(v) {
    if (isNaN(v)) return "–";
    var n = digits(v);
    if (!formats[n]) formats[n] = new Intl.NumberFormat("en-US", { maximumFractionDigits: n });
    return formats[n].format(v);
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

  // times are the rows' instants, or their numbers where the rows have names.
  function times(block) {
    if (block.t) return block.t;
    var t = [];
    if (block.names) return block.names.map(function (name, i) { return i; });
    for (var i = 0; i < block.n; i++) t.push(block.t0 + i * (block.dt || 0));
    return t;
  }
  // Columns are typed arrays, which ECharts copies as a whole; NaN stands for none.
  function column(values) {
    return Float64Array.from(values, function (v) { return v === null ? NaN : v; });
  }
  function dataset(block) {
    var source = { t: block.times }, dimensions = [{ name: "t", type: block.names ? "ordinal" : "time" }];
    block.columns.forEach(function (c, i) {
      source["c" + i] = c.values;
      dimensions.push({ name: "c" + i, type: "number" });
    });
    return { source: source, dimensions: dimensions };
  }
  // rowName is what a row is about: a moment, or what its name says.
  function rowName(block, i) {
    return block.names ? block.below + ": " + block.names[i] : moment(block.times[i], block);
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
      "@tip": function (params) { return tip(block, block.names ? params[0].dataIndex : row(block, params[0].axisValue)); }
    };
  }

  // resolve copies an option and replaces its tokens: colours by references to
  // the page's own, which follow the theme by themselves, formatters by functions.
  function resolve(value, key, font, format) {
    if (Array.isArray(value)) return value.map(function (v) { return resolve(v, key, font, format); });
    if (value && typeof value === "object") {
      var out = {};
      Object.keys(value).forEach(function (k) { out[k] = resolve(value[k], k, font, format); });
      return out;
    }
    if (typeof value !== "string") return value;
    if (colourKeys[key] && value.indexOf("--") === 0) return "var(" + value + ")";
    if (key === "formatter" && format[value]) return format[value];
    if (key === "fontFamily" && value === "inherit") return font;
    return value;
  }

  // pixelsPerLabel is the room that a label of the time axis needs.
  var pixelsPerLabel = 54;
  var minuteMs = 60000, hourMs = 60 * minuteMs;
  var steps = [1, 2, 5, 10, 15, 30].map(function (m) { return m * minuteMs; })
    .concat([1, 2, 3, 4, 6, 12].map(function (h) { return h * hourMs; }))
    .concat([1, 2, 5, 7, 10, 30, 100, 365].map(function (d) { return d * dayMs; }));

  // ticks are the labels of the time axis over what it shows: whole steps from the
  // midnight before the experiment, as many as there is room for.
  function ticks(c) {
    var block = c.block, grid = block.option.grid[0], axis = block.option.xAxis[0];
    var from = block.shown ? block.shown[0] : axis.min, to = block.shown ? block.shown[1] : axis.max;
    var room = c.width - Number(grid.left) - Number(grid.right);
    var most = Math.max(2, Math.floor(room / pixelsPerLabel)), step = steps[steps.length - 1];
    for (var i = 0; i < steps.length; i++) {
      if ((to - from) / steps[i] <= most) { step = steps[i]; break; }
    }
    var origin = Math.floor(block.start / dayMs) * dayMs, out = [];
    for (var t = origin + Math.ceil((from - origin) / step) * step; t <= to; t += step) out.push(t);
    return out;
  }

  // option is all of a chart; fitted is the part that depends on its size and on
  // whether it is on paper, where a slider is of no use.
  function option(c, font) {
    var o = resolve(c.block.option, "", font, formatters(c.block));
    o.dataset = dataset(c.block);
    o.tooltip.backgroundColor = "var(--panel)";
    o.tooltip.borderColor = "var(--rule)";
    o.tooltip.textStyle = { color: "var(--ink)" };
    return o;
  }
  function fitted(c) {
    var o = {}, from = c.block.option, paper = root.classList.contains("print");
    if (!c.block.names) {
      var values = ticks(c);
      o.xAxis = [{ axisLabel: { customValues: values }, axisTick: { customValues: values } }];
    }
    if (from.dataZoom && from.dataZoom[0].show) {
      o.dataZoom = [{ id: from.dataZoom[0].id, show: !paper }];
      o.grid = [{ bottom: paper ? from.dataZoom[0].height + 4 : from.grid[0].bottom }];
    }
    return o;
  }

  // --- tooltip and tables --------------------------------------------------

  function element(name, text, className) {
    var e = document.createElement(name);
    if (text !== undefined) e.textContent = text;
    if (className) e.className = className;
    return e;
  }
  // cellText is a value in words; one above the axis says why.
  function cellText(c, i, unit) {
    if (c.above && c.above.indexOf(i) >= 0) return c.as;
    return number(c.values[i]) + (unit ? " " + unit : "");
  }
  function tip(block, i) {
    var box = element("div", undefined, "tip"), table = element("table");
    box.appendChild(element("h5", rowName(block, i)));
    block.columns.forEach(function (c) {
      if (c.hidden || isNaN(c.values[i])) return;
      var tr = element("tr"), name = element("td"), dot = element("i");
      dot.style.background = c.colour ? "var(" + c.colour + ")" : "transparent";
      name.appendChild(dot);
      name.appendChild(document.createTextNode(c.label));
      tr.appendChild(name);
      tr.appendChild(element("td", cellText(c, i, c.unit), "num"));
      table.appendChild(tr);
    });
    box.appendChild(table);
    return box;
  }
  function fillTable(block, target) {
    var shown = block.columns.filter(function (c) { return !c.hidden; });
    var table = element("table"), head = element("tr"), body = element("tbody"), thead = element("thead");
    head.appendChild(element("th", block.names ? block.below : "from"));
    shown.forEach(function (c) { head.appendChild(element("th", c.label + (c.unit ? " (" + c.unit + ")" : ""), "num")); });
    thead.appendChild(head);
    for (var i = 0; i < block.times.length; i++) {
      var tr = element("tr");
      tr.appendChild(element("td", block.names ? block.names[i] : rowName(block, i)));
      shown.forEach(function (c) { tr.appendChild(element("td", cellText(c, i), "num")); });
      body.appendChild(tr);
    }
    table.appendChild(thead);
    table.appendChild(body);
    target.appendChild(table);
  }

  // --- zoom ----------------------------------------------------------------

  // zoomTo acts on the chart with the slider; echarts.connect carries it on.
  function zoomTo(from, to) {
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

  // measure reads the size of every chart before anything is drawn: a read after
  // a write makes the browser lay out the whole page.
  function measure() {
    charts.forEach(function (c) {
      c.width = c.element.clientWidth;
      c.height = c.element.clientHeight;
    });
  }
  // fit renders every chart in its size, and says for which width it has.
  function fit() {
    measure();
    charts.forEach(function (c) {
      c.instance.setOption(fitted(c), { lazyUpdate: true });
      c.instance.resize({ width: c.width, height: c.height }); // renders what is set
    });
    // Now, as paper does not wait for the next frame; and all of them after the
    // last read of a size.
    charts.forEach(function (c) { c.instance.getZr().flush(); });
    root.dataset.drawn = (root.classList.contains("print") ? "print " : "") + innerWidth;
  }
  // Zooming moves the time axes of a group together, so that one of its charts
  // tells for all; the axes' labels follow once it rests.
  function followZoom(lead) {
    var group = charts.filter(function (c) { return c.block.group === lead.block.group; }), zoomed = 0;
    lead.instance.on("datazoom", function () {
      var z = lead.instance.getOption().dataZoom[0], shown = [z.startValue, z.endValue];
      group.forEach(function (c) { c.block.shown = shown; });
      clearTimeout(zoomed);
      zoomed = setTimeout(function () {
        group.forEach(function (c) { c.instance.setOption(fitted(c)); });
        root.dataset.zoomed = shown.join(" ");
      }, 60);
    });
  }

  document.querySelectorAll("script.chart-data").forEach(function (script) {
    var block = JSON.parse(script.textContent);
    block.times = column(times(block));
    block.columns.forEach(function (c) { c.values = column(c.values); });
    charts.push({ block: block, element: document.getElementById(block.id) });
  });
  measure();
  var font = getComputedStyle(document.body).fontFamily;
  charts.forEach(function (c) {
    c.instance = echarts.init(c.element, null, { renderer: "svg", width: c.width, height: c.height });
    c.instance.setOption(option(c, font), { lazyUpdate: true });
    if (c.block.group) c.instance.group = c.block.group;
    if (c.block.group === "run") dragZoom(c);
  });
  var lead = charts.filter(function (c) { return c.block.group === "run"; })[0];
  if (lead) followZoom(lead);
  fit();
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
    resized = setTimeout(fit, 80);
  });
  // On paper: the light colours, and charts as wide as the sheet's columns.
  matchMedia("print").addEventListener("change", function (e) {
    root.classList.toggle("print", e.matches);
    fit();
  });
  root.dataset.charts = String(charts.length);
})();
