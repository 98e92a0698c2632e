import { readFileSync } from 'node:fs'
import type { Profiler } from 'node:inspector'
import { SourceMap, type SourceMapPayload } from 'node:module'
import { fileURLToPath } from 'node:url'

/** Processor time of the main thread by where it was spent, in milliseconds. */
export type Profile = Readonly<Record<string, number>>

type Frame = Profiler.ProfileNode['callFrame']

/** A longer time between two samples, in samples, is time in which the machine ran other processes. */
const longestSample = 5

const idle = '(idle)'
const loading = 'loading modules'

/** Work of Node that is a place of its own, by the files of Node that it begins in, with what these call in Node. */
const placesInNode = {
  [loading]: /^node:internal\/(?:modules|vm|source_map|deps\/cjs-module-lexer)\b/,
  'loading modules of Node': /^node:internal\/bootstrap\/realm\b/,
  'the start of Node': /^node:internal\/(?:bootstrap|main|process\/pre_execution)\b/,
}

/** The time of each place, from samples that were taken at this interval. */
export function timesByPlace(
  { nodes, samples = [], timeDeltas = [] }: Profiler.Profile,
  samplingUs: number,
): Profile {
  const origins = new Origins()
  const placeOfNode = new Map<number, string>()
  // Each node comes before the nodes that it calls.
  for (const node of nodes) {
    const own = placeOfNode.get(node.id) ?? 'V8'
    const place = findPlace(node.callFrame, own, origins)
    placeOfNode.set(node.id, place)
    for (const child of node.children ?? []) placeOfNode.set(child, place)
  }
  const times: Record<string, number> = {}
  for (const [index, sample] of samples.entries()) {
    const place = placeOfNode.get(sample)
    if (place === undefined || place === idle) continue
    const tookUs = Math.min(timeDeltas[index] ?? 0, longestSample * samplingUs)
    times[place] = (times[place] ?? 0) + tookUs / 1000
  }
  return times
}

/** The place to which the time of a function counts. The time of V8 and addons counts to their caller. */
function findPlace(frame: Frame, caller: string, origins: Origins): string {
  const { url, functionName } = frame
  if (url.startsWith('node:')) return placeInNode(url, caller)
  // What a module does when it is imported is the function that holds all of it.
  if (url !== '')
    return frame.lineNumber + frame.columnNumber === 0 ? loading : placeInFile(origins.of(frame))
  if (functionName === idle) return idle
  if (functionName === '(garbage collector)') return 'garbage collector'
  if (functionName.startsWith('(')) return 'V8'
  // The statements of better-sqlite3 have no names of their own.
  return functionName === '' && caller.includes('sqlite') ? 'SQLite' : caller
}

/** The folder of a file of ours, or the package of another one. */
function placeInFile(origin: string): string {
  const ours = /\/(?:packages|packed)\/([\w-]+\/)src\/((?:[\w-]+\/){0,2})/.exec(origin)
  if (ours) return `${ours[1]}${ours[2]}`.slice(0, -1)
  const others = /.*\/node_modules\/((?:@[\w-]+\/)?[\w.-]+)/.exec(origin)
  return others?.[1] ?? 'the script and the reader'
}

function placeInNode(url: string, caller: string): string {
  const begun = Object.entries(placesInNode).find(([, files]) => files.test(url))
  return begun?.[0] ?? (Object.hasOwn(placesInNode, caller) ? caller : 'Node')
}

/** The sources of functions. A published file of a package holds many modules; the source map beside it names them. */
class Origins {
  readonly #maps = new Map<string, SourceMap | undefined>()

  /** The path of the file that a function was written in, or the URL of the file that holds it. */
  of({ url, lineNumber, columnNumber }: Frame): string {
    if (!url.startsWith('file:')) return url
    if (!this.#maps.has(url)) this.#maps.set(url, readSourceMap(fileURLToPath(url)))
    const entry = this.#maps.get(url)?.findEntry(lineNumber, columnNumber)
    return entry !== undefined && 'originalSource' in entry ? new URL(entry.originalSource, url).href : url
  }
}

function readSourceMap(path: string): SourceMap | undefined {
  try {
    return new SourceMap(JSON.parse(readFileSync(`${path}.map`, 'utf8')) as SourceMapPayload)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
