import type { Fault } from '../format/event-row.ts'
import type { MissingContents } from '../store/redact.ts'
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
}
