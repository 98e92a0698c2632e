import { writeSync } from 'node:fs'
import { standStill } from './stopped-process.ts'

/** What becomes of a process: it lives, or it dies or is stopped at its `at`-th boundary (from 1). */
export type Fate =
  | { readonly kind: 'live' }
  | { readonly kind: 'kill'; readonly at: number }
  | { readonly kind: 'stop'; readonly at: number }

/** What a process that is to be stopped says on stdout, before the place. */
export const stopping = 'stopping at '

/** Called at every place where a process can be cut off: on both sides of every commit and of every effect. */
export type Cross = (place: string) => void

/** The boundaries that a process has crossed. It meets its fate at one of them, before whatever comes next. */
export class Boundaries {
  readonly crossed: string[] = []
  readonly #fate: Fate

  constructor(fate: Fate) {
    this.#fate = fate
  }

  readonly cross: Cross = (place) => {
    this.crossed.push(place)
    if (this.#fate.kind === 'live' || this.#fate.at !== this.crossed.length) return
    if (this.#fate.kind === 'kill') process.kill(process.pid, 'SIGKILL')
    writeSync(1, `${stopping}${place}\n`)
    standStill()
  }
}
