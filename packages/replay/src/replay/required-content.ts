import { ConfigurationError, type RuntimeEvent } from '@tallystick/core'

/** A run with missing content cannot be replayed. Throws a `ConfigurationError` if content of a run is missing. */
export function requireContent(events: readonly RuntimeEvent[]): void {
  const gone = events.find(({ removed }) => removed !== undefined)
  if (gone?.removed === undefined) return
  const { kind, by } = gone.removed
  const way = kind === 'sealed' ? ' Open the ledger with its keys.' : ' Choose a run that is whole.'
  throw new ConfigurationError(
    `Run ${gone.runId} cannot be driven again: the content of event ${gone.seq} is ${kind}${by === undefined ? '' : ` by ${by}`}.${way}`,
  )
}
