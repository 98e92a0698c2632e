import { addMs } from '@tallystick/core/internal'
import type { RuntimeEvent } from '@tallystick/core'
import type { EventOf, StandingScope } from '@tallystick/core/vocabulary'

/** An approval that lets later calls run, too. */
export interface Standing {
  /** The call that was approved, by which it is known. */
  readonly id: string
  /** The tool. */
  readonly name: string
  readonly by: string
  readonly roles?: readonly string[]
  readonly scope: StandingScope
  readonly expiresAt: number
  /** The event of this run that has it; with `isCarried` it was given in an earlier run of the session. */
  readonly seq: number
  readonly isCarried?: true
  /** The calls of this run that it let through. */
  readonly applied: readonly { readonly toolCallId: string; readonly seq: number }[]
  readonly withdrawn?: { readonly seq: number; readonly by?: string; readonly reason?: string }
}

/** What a standing approval did in another run of its session. */
export interface StandingElsewhere extends Standing {
  readonly runId: string
}

/** The standing approvals that held in a run, in their order. */
export function listStanding(events: readonly RuntimeEvent[]): readonly Standing[] {
  const found = new Map<string, Standing>()
  const names = new Map<string | undefined, string>()
  let forkedAt = 0
  for (const event of events) {
    if (event.type === 'run_started') {
      if (event.parent?.relation === 'fork') forkedAt = event.parent.seq
      for (const { toolCallId, inputDigest, ...given } of event.standing ?? []) {
        const scope = inputDigest === undefined ? 'session' : 'equal_input'
        const { name, by, roles, expiresAt } = given
        found.set(toolCallId, {
          ...{ id: toolCallId, name, by, scope, expiresAt, seq: event.seq, isCarried: true, applied: [] },
          ...(roles && { roles }),
        })
      }
    }
    if (event.type === 'tool_request_ready') names.set(event.toolCallId, event.name)
    const given = readGiven(event, names)
    if (given) found.set(given.id, given)
    if (event.type === 'approval_applied') {
      const { standing, toolCallId, seq } = event
      const known = found.get(standing)
      if (known) found.set(standing, { ...known, applied: [...known.applied, { toolCallId, seq }] })
    }
    if (event.type === 'approval_withdrawn' || event.type === 'session_edited') {
      const { standing = '', by, reason, seq } = event
      const known = found.get(standing)
      const withdrawn = { seq, ...(by !== undefined && { by }), ...(reason !== undefined && { reason }) }
      if (known) found.set(standing, { ...known, withdrawn })
    }
  }
  // A fork asks anew about what it shares with its source.
  return [...found.values()].filter(({ seq }) => seq > forkedAt)
}

function readGiven(
  event: RuntimeEvent,
  names: ReadonlyMap<string | undefined, string>,
): Standing | undefined {
  if (event.type !== 'approval_decided' || event.standing === undefined || event.elsewhere) return undefined
  const { toolCallId: id, by, roles, seq, at, standing }: EventOf<'approval_decided'> = event
  return {
    ...{ id, name: names.get(id) ?? '', by, scope: standing.for },
    ...{ expiresAt: addMs(at, standing.expiresInMs), seq, applied: [] },
    ...(roles && { roles }),
  }
}
