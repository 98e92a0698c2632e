// Written by `pnpm digests`, from the code that each digest is of. A test says when it is to be written anew.

/** Of the code that folds events to the state of a run: a snapshot of other code is none. */
export const reducerDigest: string = '92f64e51142df268618b2fc0ae8fa1daca5ec1627e747a3daeb0a405c958dbe0'

/** Of the code that makes projections of runs: those of other code are made anew. */
export const projectorDigest: string = 'e1f4d40e1a96cfa61a4d7c9981b6da8fbc4059ea079f0473b42f7c4f89b987ac'
