// Written by `pnpm digests`, from the code that each digest is of. A test says when it is to be written anew.

/** Of the code that folds events to the state of a run: a snapshot of other code is none. */
export const reducerDigest: string = 'd58e0faf76ef4ab87040759145c534f56a095f6944ebc100e42d5ed3d965894a'

/** Of the code that makes projections of runs: those of other code are made anew. */
export const projectorDigest: string = '4238d49f740514e7ad43490fbb009bd98243445eed8e908fe1b2baabfee25872'
