/**
 * The version of the fold. It rises whenever the state of any recorded run changes, or is written as other JSON: a
 * store keeps it with each snapshot, and never reads a snapshot of another version. The golden ledgers hold the state
 * of each version, and fail when the states change and the version does not.
 */
export const foldVersion = 6
