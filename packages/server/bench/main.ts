// What one serving process carries on this machine, over loopback: `pnpm load`. Options:
//   --runs N        live runs that are followed; 200 where not given
//   --readers N     that follow them; 2000 where not given
//   --rate N        pieces of a reply in a second; 2 where not given
//   --starts N      in a second; 500 where not given
//   --seconds N     of each load; 60 where not given
//   --only NAME     following, killed or starts; all of them where not given
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { costsText, spreadText } from './load/figures.ts'
import { playFollowing } from './load/following-load.ts'
import { playStarting } from './load/starting-load.ts'

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '200' },
    readers: { type: 'string', default: '2000' },
    rate: { type: 'string', default: '2' },
    starts: { type: 'string', default: '500' },
    seconds: { type: 'string', default: '60' },
    only: { type: 'string' },
  },
})
const [runs, readers, rate] = [Number(values.runs), Number(values.readers), Number(values.rate)]
const [perSecond, seconds] = [Number(values.starts), Number(values.seconds)]

async function follow(path: string, isKilled: boolean): Promise<readonly string[]> {
  const told = await playFollowing({ path, runs, readers, seconds, rate, isKilled })
  console.log(
    `  ${told.events.toLocaleString('en')} events reached ${told.readers.toLocaleString('en')} readers of ${runs} runs`,
  )
  console.log(`  lag: ${spreadText(told.lagMs)}`)
  if (isKilled) {
    console.log(`  ${told.reconnected.toLocaleString('en')} readers connected again`)
    console.log(`  without an event: ${spreadText(told.gapMs)}`)
  }
  console.log(`  the serving process: ${costsText(told.costs)}`)
  return told.faults
}

async function start(path: string): Promise<readonly string[]> {
  const told = await playStarting({ path, perSecond, seconds })
  console.log(`  ${told.runs.toLocaleString('en')} runs started, ${Math.round(told.perSecond)} a second`)
  console.log(`  acknowledged: ${spreadText(told.startMs)}`)
  console.log(`  the serving process: ${costsText(told.costs)}`)
  return told.faults
}

const loads = {
  following: [`Readers follow live runs for ${seconds} s`, (path: string) => follow(path, false)],
  killed: [`The same, and the serving process is killed in the middle`, (path: string) => follow(path, true)],
  starts: [`${perSecond} starts a second for ${seconds} s`, start],
} as const
const unknown = values.only !== undefined && !(values.only in loads)
if (unknown) throw new Error(`No load is called ${values.only}. There are ${Object.keys(loads).join(', ')}.`)

for (const [name, [what, play]] of Object.entries(loads)) {
  if (values.only !== undefined && values.only !== name) continue
  console.log(`${what}:`)
  const folder = mkdtempSync(join(tmpdir(), 'tallystick-load-'))
  try {
    const faults = await play(join(folder, 'runs.db'))
    console.log(
      faults.length === 0
        ? '  nothing is lost, and nothing came twice'
        : `  FAULTS: ${faults.slice(0, 5).join('\n  ')}`,
    )
    if (faults.length > 0) process.exitCode = 1
  } finally {
    rmSync(folder, { recursive: true })
  }
}
