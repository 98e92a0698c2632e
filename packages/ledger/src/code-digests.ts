// Written by `pnpm digests`, from the code that each digest is of. A test says when it is to be written anew.

/** Of the code that folds events to the state of a run: a snapshot of other code is none. */
export const reducerDigest: string = '3c04cc3ec22d2278224d02d56fee2aafe720ec15034c6ee823d6cf49fee269d0'

/** Of the code that makes projections of runs: those of other code are made anew. */
export const projectorDigest: string = 'cbc5563d71d1bb06073ceb84be2b75be11f041d7a989ccd94f0a5de96dc7de79'
