// How many deltas a second each adapter passes on, over loopback HTTP, against the bare SDK reading the same stream.
// The two take turns within one run, so that a busy machine slows both: the ratio is what counts.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { adapted, bare, type Side } from './sides.ts'
import { deltasPerReply, type WireName, wireNames, words } from './streams.ts'

const roundsToWarmUp = 4
const rounds = Number(process.env['BENCH_ROUNDS'] ?? 21)
// An adapter may take as much again as its client does.
const ratioWanted = 0.5
const whole = words.join('')

async function deltasPerSecond(side: Side): Promise<number> {
  const begun = performance.now()
  const text = await side()
  const seconds = (performance.now() - begun) / 1000
  if (text !== whole) throw new Error('The reply was not read whole, so its speed says nothing.')
  return deltasPerReply / seconds
}

interface Speeds {
  readonly bare: number
  readonly adapter: number
}

/** The best speed of each side: whatever else the machine has to do can only make a round slower. */
async function measure(wire: WireName, url: string): Promise<Speeds> {
  const sides = { bare: bare[wire](url), adapter: adapted(wire, url) }
  const best = { bare: 0, adapter: 0 }
  for (let round = -roundsToWarmUp; round < rounds; round++) {
    // Who begins changes, since what one leaves behind the other has to clear away.
    const order = round % 2 === 0 ? (['bare', 'adapter'] as const) : (['adapter', 'bare'] as const)
    for (const side of order) {
      const speed = await deltasPerSecond(sides[side])
      if (round >= 0) best[side] = Math.max(best[side], speed)
    }
  }
  return best
}

const server = fork(join(import.meta.dirname, 'server.ts'))
const [port] = (await once(server, 'message')) as [number]
const wanted = process.argv.slice(2)
const chosen = wireNames.filter((wire) => wanted.length === 0 || wanted.includes(wire))
console.log(`wire         bare SDK   adapter    ratio   (deltas a second, the best of ${rounds} rounds)`)
let slow = false
for (const wire of chosen) {
  const best = await measure(wire, `http://127.0.0.1:${port}`)
  const ratio = best.adapter / best.bare
  slow ||= ratio < ratioWanted
  const speeds = [best.bare, best.adapter].map((speed) => `${Math.round(speed)}`.padStart(8))
  console.log(`${wire.padEnd(12)} ${speeds.join('  ')}     ${ratio.toFixed(2)}`)
}
if (slow) console.log(`Wanted: ${ratioWanted} of the bare SDK or more.`)
server.disconnect()
