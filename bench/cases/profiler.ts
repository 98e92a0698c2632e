import { Session, type Profiler } from 'node:inspector/promises'

/** Processor time of the main thread by where it was spent, in milliseconds. */
export type Profile = Readonly<Record<string, number>>

const samplingUs = 200
/** A longer time between two samples is time in which the machine ran other processes. */
const longestSampleUs = 5 * samplingUs

/** Does the work, and says where the main thread spent its time. Time in which it waited is left out. */
export async function profiled<T>(
  work: () => T | Promise<T>,
): Promise<{ readonly value: T; readonly profile: Profile }> {
  const session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.setSamplingInterval', { interval: samplingUs })
  await session.post('Profiler.start')
  try {
    const value = await work()
    const { profile } = await session.post('Profiler.stop')
    return { value, profile: timesByPlace(profile) }
  } finally {
    session.disconnect()
  }
}

function timesByPlace({ nodes, samples = [], timeDeltas = [] }: Profiler.Profile): Profile {
  const placeOfNode = new Map<number, string>()
  // Each node comes before the nodes that it calls.
  for (const node of nodes) {
    const own = placeOfNode.get(node.id) ?? 'V8'
    const place = placeOf(node.callFrame, own)
    placeOfNode.set(node.id, place)
    for (const child of node.children ?? []) placeOfNode.set(child, place)
  }
  const times: Record<string, number> = {}
  for (const [index, sample] of samples.entries()) {
    const place = placeOfNode.get(sample)
    if (place === undefined || place === idle) continue
    times[place] = (times[place] ?? 0) + Math.min(timeDeltas[index] ?? 0, longestSampleUs) / 1000
  }
  return times
}

const idle = '(idle)'

/** The folder of a function of ours, or the package of another one; for functions of V8 and of addons, what called them. */
function placeOf(
  { url, functionName }: Profiler.Profile['nodes'][number]['callFrame'],
  caller: string,
): string {
  const ours = /\/packages\/([\w-]+\/)src\/((?:[\w-]+\/){0,2})/.exec(url)
  if (ours) return `${ours[1]}${ours[2]}`.slice(0, -1)
  const others = /.*\/node_modules\/((?:@[\w-]+\/)?[\w.-]+)/.exec(url)
  if (others?.[1] !== undefined) return others[1]
  if (url.startsWith('node:')) return 'Node'
  if (url !== '') return 'the script and the reader'
  if (functionName === idle) return idle
  if (functionName === '(garbage collector)') return 'garbage collector'
  if (functionName.startsWith('(')) return 'V8'
  // The statements of better-sqlite3 have no names of their own.
  return functionName === '' && caller.includes('sqlite') ? 'SQLite' : caller
}
