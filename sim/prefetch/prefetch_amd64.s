#include "textflag.h"

// func Lines(p unsafe.Pointer, n int)
TEXT ·Lines(SB), NOSPLIT, $0-16
	MOVQ p+0(FP), AX
	MOVQ n+8(FP), CX

next:
	PREFETCHT0 (AX)
	ADDQ       $64, AX
	SUBQ       $1, CX
	JG         next
	RET

// func One(p unsafe.Pointer)
TEXT ·One(SB), NOSPLIT, $0-8
	MOVQ       p+0(FP), AX
	PREFETCHT0 (AX)
	RET

// func Two(p unsafe.Pointer)
TEXT ·Two(SB), NOSPLIT, $0-8
	MOVQ       p+0(FP), AX
	PREFETCHT0 (AX)
	PREFETCHT0 64(AX)
	RET

// func Three(p, q, r unsafe.Pointer)
TEXT ·Three(SB), NOSPLIT, $0-24
	MOVQ       p+0(FP), AX
	MOVQ       q+8(FP), BX
	MOVQ       r+16(FP), CX
	PREFETCHT0 (AX)
	PREFETCHT0 (BX)
	PREFETCHT0 (CX)
	RET
