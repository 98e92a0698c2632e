import type { Fault } from '../record/link-check.ts'
import type { MissingContents } from '../removal/missing-content.ts'
import type { FamilyAudit } from './family-audit.ts'

/** How far an audit of a run came, and what stopped it. */
export interface Progress {
  /** Sound events, from the first on. */
  events: number
  broken?: Fault & { readonly seq: number }
  readonly missing: MissingContents
  /** Whether the last of them ends the run. */
  hasEnded: boolean
  /** What the run's events say of its child runs. */
  readonly family: FamilyAudit
  /** The facts that the store holds, and no event has stated yet. */
  readonly facts: Set<number>
  /** The first event that states one which the store does not hold. */
  unheld?: Progress['broken']
}
