// Written by `pnpm digests`, from the code that each digest is of. A test says when it is to be written anew.

/** Of the code that folds events to the state of a run: a snapshot of other code is none. */
export const reducerDigest: string = 'cee65a3a5b0d0bf2129243fbf065b829999f644c2d92e12ab1784f6a217746cb'

/** Of the code that makes projections of runs: those of other code are made anew. */
export const projectorDigest: string = 'dfdf5f95ef9089d67de94cd967c9b92b5c0c2632ec8e81b47f3c25a4ce34083d'
