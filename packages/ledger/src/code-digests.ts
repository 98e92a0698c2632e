// Written by `pnpm digests`, from the code that each digest is of. A test says when it is to be written anew.

/** Of the code that folds events to the state of a run: a snapshot of other code is none. */
export const reducerDigest: string = '1464cdaca6876ca12744df3466675455c568a658cf78f9376f6290e27e5b748a'

/** Of the code that makes projections of runs: those of other code are made anew. */
export const projectorDigest: string = 'dc80a736ea3d6dff28bb123eb557e8b83500f8a4f621fb6386fe640f363620e0'
