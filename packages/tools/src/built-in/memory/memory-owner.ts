import type { Ledger, RunId } from '@tallystick/core'
import { readStart } from '@tallystick/core/kit'
import { ToolError } from '../../execution/tool-error.ts'
import { type MemoryOwner, ownerName } from './memory-store.ts'

/** More links between a run and the one that has the session than any family of runs needs. */
const maxLinks = 50

/** The owner that a run on record says: its subject, or its session. A child run has the session of its parent. */
export async function recordedOwner(
  ledger: Pick<Ledger, 'read'>,
  runId: RunId,
  per: 'subject' | 'session',
): Promise<MemoryOwner> {
  const start = await readStart(ledger, runId)
  const subject = start?.subject
  if (per === 'subject') {
    if (subject === undefined) throw unowned('subject')
    return { owner: ownerName.subject(subject), subject }
  }
  let run = start
  for (let links = 0; run && run.sessionId === undefined && links < maxLinks; links++) {
    run = run.parent && (await readStart(ledger, run.parent.runId))
  }
  if (run?.sessionId === undefined) throw unowned('session')
  return { owner: ownerName.session(run.sessionId), subject }
}

function unowned(per: 'subject' | 'session'): ToolError {
  const option = per === 'subject' ? 'subject' : 'sessionId'
  return new ToolError(
    `Nothing can be remembered here: this run has no ${per}. The application has to start it with ${option}.`,
  )
}
