// Written by `pnpm digests`, from the code that each digest is of. A test says when it is to be written anew.

/** Of the code that folds events to the state of a run: a snapshot of other code is none. */
export const reducerDigest: string = 'c8cd55f7f81a79b62adf9f4975c24a4eadbe39dc197a853d0767515ca6b592e5'

/** Of the code that makes projections of runs: those of other code are made anew. */
export const projectorDigest: string = '7e59c73f1e7275af1dd80082b1f507ef101654db589269d2a4dd5312c2b3d30e'
