#include "textflag.h"

// func Lines(p unsafe.Pointer, n int)
TEXT ·Lines(SB), NOSPLIT, $0-16
	MOVD p+0(FP), R0
	MOVD n+8(FP), R1

next:
	PRFM (R0), PLDL1KEEP
	ADD  $64, R0
	SUBS $1, R1
	BGT  next
	RET

// func One(p unsafe.Pointer)
TEXT ·One(SB), NOSPLIT, $0-8
	MOVD p+0(FP), R0
	PRFM (R0), PLDL1KEEP
	RET

// func Two(p unsafe.Pointer)
TEXT ·Two(SB), NOSPLIT, $0-8
	MOVD p+0(FP), R0
	PRFM (R0), PLDL1KEEP
	ADD  $64, R0
	PRFM (R0), PLDL1KEEP
	RET

// func Three(p, q, r unsafe.Pointer)
TEXT ·Three(SB), NOSPLIT, $0-24
	MOVD p+0(FP), R0
	MOVD q+8(FP), R1
	MOVD r+16(FP), R2
	PRFM (R0), PLDL1KEEP
	PRFM (R1), PLDL1KEEP
	PRFM (R2), PLDL1KEEP
	RET
