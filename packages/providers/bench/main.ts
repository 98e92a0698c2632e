// How many deltas a second each adapter passes on, over loopback HTTP, against the bare SDK reading the same stream.
// The two take turns within one run, so that a busy machine slows both: the ratio is what counts.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { adapted, bare, type Side } from './sides.ts'
import { deltasPerReply, type WireName, wireNames, words } from './streams.ts'

const roundsToWarmUp = 4
const rounds = Number(process.env['BENCH_ROUNDS'] ?? 21)
const ratioWanted = 0.85
const whole = words.join('')

async function deltasPerSecond(side: Side): Promise<number> {
  const begun = performance.now()
  const text = await side()
  const seconds = (performance.now() - begun) / 1000
  if (text !== whole) throw new Error('The reply was not read whole, so its speed says nothing.')
  return deltasPerReply / seconds
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)]!
}

interface Figures {
  readonly bare: number
  readonly adapter: number
  readonly ratio: number
}

async function measure(wire: WireName, url: string): Promise<Figures> {
  const sides = { bare: bare[wire](url), adapter: adapted(wire, url) }
  const measured: Figures[] = []
  for (let round = -roundsToWarmUp; round < rounds; round++) {
    // Who begins changes, since what one leaves behind the other has to clear away.
    const order = round % 2 === 0 ? (['bare', 'adapter'] as const) : (['adapter', 'bare'] as const)
    const speeds = { bare: 0, adapter: 0 }
    for (const side of order) speeds[side] = await deltasPerSecond(sides[side])
    if (round >= 0) measured.push({ ...speeds, ratio: speeds.adapter / speeds.bare })
  }
  return {
    bare: median(measured.map((one) => one.bare)),
    adapter: median(measured.map((one) => one.adapter)),
    ratio: median(measured.map((one) => one.ratio)),
  }
}

const server = fork(join(import.meta.dirname, 'server.ts'))
const [port] = (await once(server, 'message')) as [number]
const wanted = process.argv.slice(2)
const chosen = wireNames.filter((wire) => wanted.length === 0 || wanted.includes(wire))
console.log('wire         bare SDK   adapter    ratio   (deltas a second; medians; the ratio of each round)')
let slow = false
for (const wire of chosen) {
  const figures = await measure(wire, `http://127.0.0.1:${port}`)
  slow ||= figures.ratio < ratioWanted
  const speeds = [figures.bare, figures.adapter].map((speed) => `${Math.round(speed)}`.padStart(8))
  console.log(`${wire.padEnd(12)} ${speeds.join('  ')}     ${figures.ratio.toFixed(2)}`)
}
if (slow) console.log(`Wanted: ${ratioWanted} of the bare SDK or more.`)
server.disconnect()
