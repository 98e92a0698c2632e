// Written by `pnpm digests`, from the code that each digest is of. A test says when it is to be written anew.

/** Of the code that folds events to the state of a run: a snapshot of other code is none. */
export const reducerDigest: string = '486f32943c70906659b088000ffffc8027d1fd6f28113dcfd675dc17d33c5eba'

/** Of the code that makes projections of runs: those of other code are made anew. */
export const projectorDigest: string = '2951db7b29482ea07a4e97a6741ac8c162ee64d14d29f9a7a746315ee1499ba2'
