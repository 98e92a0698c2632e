// Written by `pnpm digests`, from the code that each digest is of. A test says when it is to be written anew.

/** Of the code that folds events to the state of a run: a snapshot of other code is none. */
export const reducerDigest: string = 'e61d444f52fe459af9101a98981d2fe2aee5438625404f77b2963ab4c1e4ef0b'

/** Of the code that makes projections of runs: those of other code are made anew. */
export const projectorDigest: string = '804a3fefdd0bc1be27bdca8f1caf80f1b7784ef18e8e511f9d81a248b483fffe'
