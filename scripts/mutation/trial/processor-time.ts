import { readdirSync, readFileSync } from 'node:fs'

/** Linux counts processor time in hundredths of a second. */
const msPerTick = 10

/**
 * Returns the milliseconds of processor time that a process and those of its group have taken, with those of children
 * that have ended, or `undefined` where the machine does not say.
 */
export function processorMsOf(group: number): number | undefined {
  try {
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .reduce((sum, name) => sum + ticksOf(name, group) * msPerTick, 0)
  } catch {
    return undefined
  }
}

function ticksOf(pid: string, group: number): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The name of the program, in brackets, may hold anything.
    const fields = stat
      .slice(stat.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number)
    const [, , pgrp] = fields
    if (pgrp !== group) return 0
    const [own = 0, system = 0, children = 0, childrenSystem = 0] = fields.slice(11, 15)
    return own + system + children + childrenSystem
  } catch {
    // It has ended meanwhile.
    return 0
  }
}
