import { setImmediate } from 'node:timers'
import type { Clock } from '@tallystick/core'
import type { Cancel, Random } from '@tallystick/core/vocabulary'
import { seededRandom } from '../seeded-random.ts'

/** Where the time of each world begins, in milliseconds since 1970 UTC. */
export const worldStart: number = Date.UTC(2026, 0, 1)

interface Task {
  at: number
  /** Drawn: of tasks of one moment, the lowest is first. */
  order: number
  readonly actor: Actor | undefined
  readonly callback: () => void
  isCancelled: boolean
}

/** Tasks that happen in the order in which they were given, such as the reports of one stream. */
export interface Lane {
  at: number
  order: number
}

/** Something that acts in a world, such as a process. A dead one does nothing more; a stopped one does it later. */
export class Actor {
  readonly name: string
  readonly random: Random
  isDead = false
  /** Until when it stands still, as a process does that was sent SIGSTOP. */
  stoppedUntil: number = -Infinity

  constructor(name: string, random: Random) {
    this.name = name
    this.random = random
  }
}

/**
 * Time, chance and order of a simulated world. Whatever waits there waits for a task of the world, so that nothing happens
 * by itself: the world takes the next task, lets all promises settle that follow from it, and takes the next. Delays and order
 * are drawn from the seed and the name of who acts, so that leaving one actor out changes nothing for the others.
 */
export class World {
  readonly seed: number
  /** All delays are as short as they can be: a shrunk world. */
  readonly isCalm: boolean
  now: number = worldStart
  steps = 0
  /** In reverse order: the next task is the last. */
  readonly #tasks: Task[] = []
  readonly #order: Random
  #held = -1e12
  #trace: string[] | undefined

  constructor(
    seed: number,
    { isCalm = false, traced = false }: { readonly isCalm?: boolean; readonly traced?: boolean } = {},
  ) {
    this.seed = seed
    this.isCalm = isCalm
    this.#order = this.chance('order')
    if (traced) this.#trace = []
  }

  get trace(): readonly string[] {
    return this.#trace ?? []
  }

  /** Adds a line to the trace, if one is kept. */
  note(who: string, what: () => string): void {
    this.#trace?.push(`${String(this.now - worldStart).padStart(8)} ms  ${who.padEnd(12)} ${what()}`)
  }

  /** Random numbers of their own for what has this name. */
  chance(name: string): Random {
    return seededRandom(hash(`${this.seed} ${name}`))
  }

  actor(name: string): Actor {
    return new Actor(name, this.chance(name))
  }

  /** Does something in `delayMs`, unless the actor is dead by then; if it stands still, once it moves again. */
  after(delayMs: number, actor: Actor | undefined, callback: () => void, lane?: Lane): Cancel {
    const task: Task = {
      ...{ at: this.now + Math.ceil(Math.max(0, delayMs)), order: this.isCalm ? 0 : this.#order() },
      ...{ actor, callback, isCancelled: false },
    }
    if (lane) {
      if (task.at <= lane.at) {
        task.at = lane.at
        task.order = lane.order + (1 - lane.order) * task.order
      }
      lane.at = task.at
      lane.order = task.order
    }
    this.#insert(task)
    return () => {
      task.isCancelled = true
    }
  }

  /** Resolves in `delayMs`. */
  sleep(delayMs: number, actor: Actor | undefined): Promise<void> {
    return new Promise((resolve) => void this.after(delayMs, actor, resolve))
  }

  /** A delay from `least` to `most` milliseconds; most are near the least. */
  drawDelay({ random }: Actor, least: number, most: number): number {
    const drawn = random()
    return this.isCalm ? least : least + Math.floor((most - least) * drawn ** 4)
  }

  /** The clock of an actor, ahead of the world's by what `aheadMs` returns. */
  clockOf(actor: Actor, aheadMs: () => number = () => 0): Clock {
    return {
      now: () => this.now + aheadMs(),
      even: () => this.now - worldStart,
      schedule: (delayMs, callback) => this.after(Math.max(1, delayMs), actor, callback),
    }
  }

  /** Lets things happen until that holds, or up to a time. Returns whether it holds. */
  async runUntil(holds: () => boolean, end: number): Promise<boolean> {
    for (;;) {
      // All promises have settled that the last task could settle.
      await new Promise<void>((resolve) => void setImmediate(resolve))
      if (holds()) return true
      const task = this.#tasks.pop()
      if (task === undefined || task.at > end) {
        if (task) this.#tasks.push(task)
        return false
      }
      const { actor, isCancelled, callback } = task
      if (isCancelled || actor?.isDead) continue
      this.now = Math.max(this.now, task.at)
      if (actor && actor.stoppedUntil > this.now) {
        // In the order in which they came, before what comes later.
        task.at = actor.stoppedUntil
        task.order = ++this.#held
        this.#insert(task)
        continue
      }
      this.steps++
      callback()
    }
  }

  #insert(task: Task): void {
    let low = 0
    let high = this.#tasks.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (isLater(this.#tasks[middle] as Task, task)) low = middle + 1
      else high = middle
    }
    this.#tasks.splice(low, 0, task)
  }
}

export function createLane(): Lane {
  return { at: 0, order: 0 }
}

/** Of equal tasks the first that was given is the first to be taken. */
function isLater(task: Task, than: Task): boolean {
  return task.at > than.at || (task.at === than.at && task.order > than.order)
}

/** FNV-1a. */
function hash(text: string): number {
  let value = 0x811c9dc5
  for (let index = 0; index < text.length; index++)
    value = Math.imul(value ^ text.charCodeAt(index), 0x01000193) >>> 0
  return value
}
