// Written by `pnpm digests`, from the code that each digest is of. A test says when it is to be written anew.

/** Of the code that folds events to the state of a run: a snapshot of other code is none. */
export const reducerDigest: string = 'c7e68145ac44c3d53d84cf2c0853a0cbeabf289cadfb90aac1b3c14afa28a260'

/** Of the code that makes projections of runs: those of other code are made anew. */
export const projectorDigest: string = '8c516030e04e0b66e38e496ec67bf327c0d12c2e1064fd2da9afec5d7e84f521'
