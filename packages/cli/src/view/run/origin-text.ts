import type { RunState } from '@tallystick/core'
import type { ParentRef } from '@tallystick/core/vocabulary'

/** What tells of what a run is a part. */
export type Origin = Pick<RunState, 'sessionId' | 'sessionPlace' | 'parent'>

/** What a run is a part of, for people: its session, its parent, the run that it branched or was forked from. */
export function originText({ sessionId, sessionPlace = 1, parent }: Origin): string {
  const session = sessionId === undefined ? [] : [`run ${sessionPlace} of session ${sessionId}`]
  // Within a session the run before it goes without saying.
  const origin = parent === undefined || parent.relation === 'session' ? [] : [relationText(parent)]
  return [...session, ...origin].join(', ')
}

/** Says how a run relates to the one that it came from. */
export function relationText({ runId, seq, relation }: ParentRef): string {
  switch (relation) {
    case 'child':
      return `child of run ${runId}`
    case 'fork':
      return `forked from run ${runId} at event ${seq}`
    case 'branch':
      return `a branch of run ${runId} at event ${seq}`
    case 'session':
      return `continues run ${runId}`
  }
}
