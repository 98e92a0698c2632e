// Written by `pnpm digests`, from the code that each digest is of. A test says when it is to be written anew.

/** Of the code that folds events to the state of a run: a snapshot of other code is none. */
export const reducerDigest: string = 'f0920bbc29e95909e6379b80de5c484c2b398446565917056bf1cb35b9306ae7'

/** Of the code that makes projections of runs: those of other code are made anew. */
export const projectorDigest: string = '9ca1f4dbd7486ef0eb4028d4ba8babf5732de54c448923297df930b34b3f3cdb'
