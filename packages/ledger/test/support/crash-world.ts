import { closeSync, existsSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs'
import type { ToolRun } from '@tallystick/core/vocabulary'

/** Something that really happened outside: of a tool that began or finished its work, or a model that was asked. */
export interface Deed {
  readonly what: 'begun' | 'done' | 'reconciled' | 'asked' | 'told'
  readonly name: string
  readonly runId?: string
  readonly toolCallId?: string
  readonly attempt?: number
  readonly key?: string
  /** Whether the tool that began says that it may be started again. */
  readonly mayRepeat?: boolean
  /** Whether its start announced no effect, and may be lost with a server: of a read that may be started again, the first. */
  readonly isHarmless?: boolean
}

/** THE OUTSIDE WORLD: a journal of its own, on the disk before the tool that did something learns that it is done. */
export class World {
  readonly #path: string

  constructor(path: string) {
    this.#path = path
  }

  note(deed: Deed): void {
    const file = openSync(this.#path, 'a')
    try {
      writeSync(file, `${JSON.stringify(deed)}\n`)
      fsyncSync(file)
    } finally {
      closeSync(file)
    }
  }

  noteCall(
    what: Deed['what'],
    name: string,
    { runId, toolCallId, attempt, idempotencyKey: key }: Omit<ToolRun, 'cancelled$'>,
    says: Pick<Deed, 'mayRepeat' | 'isHarmless'> = {},
  ): void {
    this.note({ what, name, runId, toolCallId, attempt, key, ...says })
  }

  deeds(): readonly Deed[] {
    if (!existsSync(this.#path)) return []
    return readFileSync(this.#path, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Deed)
  }

  /** How often something of this name has happened. */
  count(what: Deed['what'], name: string): number {
    return this.deeds().filter((deed) => deed.what === what && deed.name === name).length
  }

  /** Whether the work under an idempotency key was done. */
  hasDone(key: string): boolean {
    return this.deeds().some((deed) => deed.what === 'done' && deed.key === key)
  }
}
