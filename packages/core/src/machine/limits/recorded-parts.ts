import type { RecordingPart } from '../../vocabulary/agent/recording-policy.ts'
import type { RunState } from '../state/state.ts'
import { countsTokens } from './settled-usage.ts'

/** What the tokens of a reply are counted by where its provider does not report them. */
const counted: ReadonlySet<RecordingPart> = new Set(['toolInputDeltas', 'reasoning'])

/**
 * Whether a run records these events: as its own policy says, else as its active agent's does. The deltas of a reply are recorded
 * all the same where a limit counts tokens: a reply that breaks off is charged by what came of it (law 9).
 */
export function isRecorded(state: RunState, part: RecordingPart): boolean {
  if (counted.has(part) && countsTokens(state)) return true
  return state.recording?.[part] ?? state.definition.policy?.recording?.[part] ?? true
}
