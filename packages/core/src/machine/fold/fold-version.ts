/**
 * The version of the fold. It rises whenever the state of any recorded run comes out otherwise than before, or is written
 * as other JSON: a store keeps it with each snapshot, and a snapshot of another version is not read. The golden ledgers
 * hold what each version folds to, and fail where the states change and the version does not.
 */
export const foldVersion = 1
