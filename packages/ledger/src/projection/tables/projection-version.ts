import { foldVersion } from '@tallystick/core'

/** The fold that snapshots are of, as a column holds it. */
export const snapshotVersion: string = `fold ${foldVersion}`

/**
 * Rises whenever a summary of any run, or a total, comes out otherwise than before, or is stored otherwise. The golden
 * ledgers hold what each version gives, and fail where that changes and the version does not.
 */
const version = 2

/** What projections were made by, as a column holds it: those of another version are made anew. */
export const projectionVersion: string = `projection ${version}, ${snapshotVersion}`
