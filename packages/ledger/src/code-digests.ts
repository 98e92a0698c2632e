// Written by `pnpm digests`, from the code that each digest is of. A test says when it is to be written anew.

/** Of the code that folds events to the state of a run: a snapshot of other code is none. */
export const reducerDigest: string = 'dd283d995507cd37387a3b952ea15d1d99751b1b24487b02bb8da2a5aea96ce8'

/** Of the code that makes projections of runs: those of other code are made anew. */
export const projectorDigest: string = 'c7e570c70fa44d41a4fc486218a73d1a2fcd65811a716275cf78f26a9f6cd49c'
