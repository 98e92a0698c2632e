import type { ToolContext } from '../../../execution/executor.ts'
import { ToolError } from '../../../execution/tool-error.ts'
import { partsOf, pathText, quoted } from '../names/asked-path.ts'
import { type Glob, GlobError, globOf } from '../names/glob.ts'
import { type Place, withPlace } from '../root/place.ts'
import { amount, bytesOf } from '../text/amounts.ts'
import type { FolderRules } from './folder-rules.ts'
import { leftText, nothingLeft, walk } from './walk.ts'

/** What `find_files` is asked for. */
export interface FindFilesInput {
  readonly glob: string
  readonly path?: string
}

/** Finds files by a glob, a path a line. */
export async function findFiles(
  rules: FolderRules,
  input: FindFilesInput,
  { signal }: ToolContext,
): Promise<string> {
  return await withPlace(rules.root, partsOf(input.path ?? '.'), {}, async (place) => {
    const { name, path } = place
    if (name !== undefined)
      throw new ToolError(`${quoted(pathText(path))} is not a folder. Search in a folder.`)
    const search = (matches: Glob): Promise<FoundFiles> =>
      searchFolder(rules, place, { matches, input, signal })
    // A model that copies the path of a route, such as `app/[slug]/page.tsx`, means that very path.
    const literal = input.glob.replaceAll(/[[\]]/g, '\\$&')
    const matches = askedGlob(input.glob)
    const named = literal === input.glob ? undefined : await search(askedGlob(literal))
    return named !== undefined && named.count > 0 ? named.text : (await search(matches)).text
  })
}

interface FoundFiles {
  readonly count: number
  readonly text: string
}

async function searchFolder(
  rules: FolderRules,
  { folder, path }: Place,
  {
    matches,
    input,
    signal,
  }: { readonly matches: Glob; readonly input: FindFilesInput; readonly signal: AbortSignal },
): Promise<FoundFiles> {
  const left = nothingLeft()
  const found: string[] = []
  let [bytes, isFull] = [0, false]
  for await (const entry of walk(rules, folder, signal, left)) {
    if (entry.kind === 'folder' || !matches(pathText(entry.path.slice(path.length)))) continue
    const line = pathText(entry.path) + (entry.kind === 'link' ? ' (link)' : '')
    bytes += bytesOf(line) + 1
    isFull = found.length >= rules.maxEntries || bytes > rules.maxBytes
    if (isFull) break
    found.push(line)
  }
  const where = path.length === 0 ? '' : ` in ${quoted(pathText(path))}`
  const many = isFull
    ? ` These are the first; there are more. Make the glob narrower, or name a folder as path.`
    : ''
  const head = `${amount(found.length, 'file')} for ${quoted(input.glob)}${where}.${many}${leftText(left, rules.maxVisited)}`
  return { count: found.length, text: [head, ...found].join('\n') }
}

/** Reads the glob that a model gave; one without a slash is of a name in any folder. */
export function askedGlob(glob: string): Glob {
  const path = glob.replace(/^\.\//, '')
  if (path.startsWith('/')) {
    throw new ToolError(
      `The glob ${quoted(glob)} is absolute. Write it from the folder that is searched, as in src/**/*.ts.`,
    )
  }
  try {
    return globOf(path.includes('/') ? path : `**/${path}`)
  } catch (error) {
    if (!(error instanceof GlobError)) throw error
    throw new ToolError(`The glob ${quoted(glob)} ${error.message}.`, { cause: error })
  }
}
