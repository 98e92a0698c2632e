// Written by `pnpm digests`, from the code that each digest is of. A test says when it is to be written anew.

/** Of the code that folds events to the state of a run: a snapshot of other code is none. */
export const reducerDigest: string = '0fa209a6846204d03b00c6a95870ef492f17d0b8b7abbd032eb9f66f1e266cf5'

/** Of the code that makes projections of runs: those of other code are made anew. */
export const projectorDigest: string = '8649a69dc59c9952f91469f64a34fbd71077adc85a926c46f660951b5e49ab48'
