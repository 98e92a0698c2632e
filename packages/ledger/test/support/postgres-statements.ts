import { vi } from 'vitest'
import { Connections, type Statement } from '../../src/postgres/connections.ts'

/** The statements that some work sends, by their names without the prefix. */
export async function statementsOf(
  work: (soFar: ReadonlyMap<string, Statement>) => Promise<unknown>,
): Promise<ReadonlyMap<string, Statement>> {
  const found = new Map<string, Statement>()
  const send = Reflect.get(Connections.prototype, 'send') as (
    this: Connections,
    statement: Statement,
  ) => Promise<unknown>
  const spied = vi.spyOn(Connections.prototype, 'send').mockImplementation(function (
    this: Connections,
    statement: Statement,
  ) {
    found.set((statement.name ?? statement.text).replace('tallystick ', ''), statement)
    return send.call(this, statement) as never
  })
  try {
    await work(found)
    return found
  } finally {
    spied.mockRestore()
  }
}
