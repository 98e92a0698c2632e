// Written by `pnpm digests`, from the code that each digest is of. A test says when it is to be written anew.

/** Of the code that folds events to the state of a run: a snapshot of other code is none. */
export const reducerDigest: string = 'c1d48352ba8f98d9ebfc90e835ec5ebf03be3adb37488713e18a2f4c760b468e'

/** Of the code that makes projections of runs: those of other code are made anew. */
export const projectorDigest: string = '6e54d4a4125e2671f271adef66f3ace3979f3d5b41cf69f80aa937d6d5155986'
