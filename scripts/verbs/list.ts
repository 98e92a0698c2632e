import { globSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import type { VerbHelp, VerbModule } from '../../packages/cli/src/command/declare-verb.ts'

const folder = new URL('../../packages/cli/src/verbs/', import.meta.url)

const head = `// Made of the files in verbs/ by \`pnpm verbs\`, so that help and completion load no verb to list it.
import type { ListedVerb } from './command/declare-verb.ts'

/** Every verb, in the order of folders and names. */
export const verbs: readonly ListedVerb[] = [
`

/** The text of `packages/cli/src/verb-list.ts`: what the file of every verb says of it. */
export async function verbList(): Promise<string> {
  const entries: string[] = []
  for (const path of globSync('*/*.ts', { cwd: folder }).toSorted()) {
    const listed = await listedIn(path)
    if (listed) entries.push(entryText(path, listed))
  }
  return `${head}${entries.join('')}]\n`
}

/** What the file of a verb says of it; `undefined` for a file that declares none. */
async function listedIn(path: string): Promise<VerbHelp | undefined> {
  const module = (await import(new URL(path, folder).href)) as Partial<VerbModule>
  if ((module.listed === undefined) !== (module.declareVerb === undefined)) {
    throw new Error(`verbs/${path}: the file of a verb exports both listed and declareVerb.`)
  }
  return module.listed
}

function entryText(path: string, { summary, example }: VerbHelp): string {
  const fields = [
    `name: ${quoted(basename(path, '.ts'))}`,
    `group: ${quoted(dirname(path))}`,
    `summary: ${quoted(summary)}`,
    `example: ${quoted(example)}`,
    `load: () => import(${quoted(`./verbs/${path}`)})`,
  ]
  return `  {\n${fields.map((field) => `    ${field},\n`).join('')}  },\n`
}

/** A text as the formatter writes it. */
function quoted(text: string): string {
  return text.includes("'") ? `\`${text}\`` : `'${text}'`
}
