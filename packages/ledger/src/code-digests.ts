// Written by `pnpm digests`, from the code that each digest is of. A test says when it is to be written anew.

/** Of the code that folds events to the state of a run: a snapshot of other code is none. */
export const reducerDigest: string = '79b22cf6f3f40a200093fbba175a12c32a15a1e811fee41b1ffe602a3df0db91'

/** Of the code that makes projections of runs: those of other code are made anew. */
export const projectorDigest: string = 'dd04e445872b50fa73a49435010a19b287a01a1e56971880960e47e85130038c'
