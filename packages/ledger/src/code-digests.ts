// Written by `pnpm digests`, from the code that each digest is of. A test says when it is to be written anew.

/** Of the code that folds events to the state of a run: a snapshot of other code is none. */
export const reducerDigest: string = 'dbe99326c510337707bfc23c3eedefcbf1a377233f9b2859094a8116e28124c0'

/** Of the code that makes projections of runs: those of other code are made anew. */
export const projectorDigest: string = '53cf93db6c5576df881dfa5caabb068ff070e96585d0db4acd0a8392191607c6'
