import { foldVersion } from '@tallystick/core/machine'

/** Rises whenever the outline of any run changes in value or in its stored form. */
const outlineVersion = 1

/** What snapshots were made by, as a column holds it: others are ignored. */
export const snapshotVersion: string = `fold ${foldVersion}, outline ${outlineVersion}`

/**
 * Rises whenever a summary of any run, or a total, changes in value or in its stored form. The golden ledgers hold
 * the result of each version, and fail when the result changes and the version does not.
 */
const version = 3

/** What projections were made by, as a column holds it: those of another version are made anew. */
export const projectionVersion: string = `projection ${version}, fold ${foldVersion}`
