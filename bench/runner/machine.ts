import { existsSync, readFileSync } from 'node:fs'
import { cpus, loadavg, release, totalmem, type } from 'node:os'
import { join } from 'node:path'

/** Describes the machine of the measurements. */
export function machineText(loadBefore: number): string {
  const [first, ...others] = cpus()
  const memory = Math.round(totalmem() / 2 ** 30)
  return [
    `machine:  ${first?.model.trim()}, ${others.length + 1} cores, ${memory} GiB, ${type()} ${release()}`,
    `load:     ${loadBefore.toFixed(1)} before, ${load().toFixed(1)} after (processes that ran or waited, average of a minute)`,
    `node:     ${process.version}`,
  ].join('\n')
}

/** Returns the number of processes that wanted to run in the last minute, on average. */
export function load(): number {
  return loadavg()[0] ?? NaN
}

export function versionsText(home: string): string {
  const path = join(home, 'package.json')
  const { dependencies = {} } = JSON.parse(readFileSync(path, 'utf8')) as {
    dependencies?: Record<string, string>
  }
  const versions = Object.keys(dependencies).map((name) => {
    const manifest = join(home, 'node_modules', name, 'package.json')
    if (!existsSync(manifest)) return `${name} (from the sources)`
    return `${name} ${(JSON.parse(readFileSync(manifest, 'utf8')) as { version: string }).version}`
  })
  return `versions: ${versions.join(', ')}`
}
