module slosim

go 1.26.0
