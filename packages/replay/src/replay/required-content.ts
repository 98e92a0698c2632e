import { ConfigurationError, type RuntimeEvent } from '@tallystick/core'

/** What nobody knows any more cannot happen again. Throws a `ConfigurationError` where content of a run is missing. */
export function requireContent(events: readonly RuntimeEvent[]): void {
  const gone = events.find(({ removed }) => removed !== undefined)
  if (gone?.removed === undefined) return
  const { kind, by } = gone.removed
  const way = kind === 'sealed' ? ' Open the ledger with its keys.' : ' Choose a run that is whole.'
  throw new ConfigurationError(
    `Run ${gone.runId} cannot be driven again: what event ${gone.seq} said is ${kind}${by === undefined ? '' : ` by ${by}`}.${way}`,
  )
}
