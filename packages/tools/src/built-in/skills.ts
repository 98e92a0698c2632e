import { existsSync, readdirSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import { ConfigurationError, type Tool } from '@tallystick/core'
import { option, requireOptions } from '@tallystick/core/internal'
import { parse, YAMLParseError } from 'yaml'
import { defineTool } from '../define/define-tool.ts'
import type { ToolContext } from '../define/run-tool.ts'
import { toVisibleText } from '../define/text.ts'
import { createNameRules } from './files/names.ts'
import { readFile } from './files/read.ts'
import { openRoot } from './files/root.ts'
import { findFiles } from './files/search.ts'
import { type FolderRules, readText } from './files/text.ts'

/** Where skills are, and how much of one a call may show. */
export interface SkillsOptions {
  /** Folders of skills, or folders that hold such folders. */
  readonly from: string | readonly string[]
  /** The skills that are used, by name. Default: all. */
  readonly only?: readonly string[] | undefined
  /** The name of the tool. Default `read_skill`. */
  readonly toolName?: string | undefined
  /**
   * Tells the model where the folder of a skill is, so that a tool which runs programs finds its scripts. Default
   * `false`.
   */
  readonly showFolders?: boolean | undefined
  /** Bytes of text shown in one result. Default 50 000. */
  readonly maxBytes?: number | undefined
}

/** The skills of an agent: a list for its instructions, and the tool that reads them. */
export interface Skills {
  readonly list: readonly Skill[]
  /** Text for the agent's instructions: how skills are used, and the name and description of each. */
  readonly instructions: string
  /** Reads a skill, and the files in its folder. */
  readonly tool: Tool
}

const { fields, filledText, listOf, maybe, numberFrom, trueOrFalse } = option

const skillsOptions = fields<SkillsOptions>(
  {
    from: (value) => (typeof value === 'string' ? filledText : listOf(filledText))(value),
    only: maybe(listOf(filledText)),
    toolName: maybe(filledText),
    showFolders: maybe(trueOrFalse),
    maxBytes: maybe(numberFrom(1_000, { whole: true })),
  },
  { path: 'from', folder: 'from', root: 'from', names: 'only', include: 'only' },
)

/**
 * Reads skills in the Agent Skills format: folders with a `SKILL.md`, whose head gives a name and a description. The
 * model sees these two, and reads the rest with a tool when a task needs it. The tool reads only within the folders,
 * and runs nothing: scripts of a skill run if the agent has a tool for programs, under the rules of that tool. `skills`
 * reads the heads now, and the agent's recorded definition holds them; texts that the tool reads are recorded as its
 * results. Throws `ConfigurationError` for a folder without skills, and for a `SKILL.md` that does not follow the
 * format.
 */
export function skills(options: SkillsOptions): Skills {
  requireOptions('skills', skillsOptions, options)
  const { from, only, toolName = 'read_skill', showFolders = false, maxBytes = 50_000 } = options
  const found = findSkills([from].flat())
  if (only) requireOptions('skills', listOf(option.oneOf(found.map(({ name }) => name))), only, 'only')
  const list = only === undefined ? found : found.filter(({ name }) => only.includes(name))
  if (list.length === 0) {
    throw new ConfigurationError(
      'skills: no folder or no name was given, so there is no skill. Give at least one of each.',
    )
  }
  const known = new Map(
    list.map((skill) => {
      const root = openRoot('skills', skill.folder, createNameRules('skills', ['node_modules/'], false))
      const rules: FolderRules = {
        ...{ root, maxBytes, maxFileBytes: 10_000_000, maxEntries: 200, maxVisited: 10_000 },
      }
      return [skill.name, { skill, rules }] as const
    }),
  )
  const tool = defineTool({
    name: toolName,
    description:
      'Reads a skill: instructions for one kind of task. Read the skill before such a task. With path it reads another file of the skill, where its instructions name one.',
    input: {
      type: 'object',
      required: ['name'],
      additionalProperties: false,
      properties: {
        name: { type: 'string', enum: list.map(({ name }) => name), description: 'The skill.' },
        path: {
          type: 'string',
          minLength: 1,
          maxLength: 1_000,
          description:
            'A file of the skill, relative to its folder, as in references/forms.md. Default: its instructions.',
        },
        offset: {
          type: 'integer',
          minimum: 1,
          description: 'The first line to show, to continue a long text. Default 1.',
        },
      },
    },
    effect: 'read',
    timeoutMs: 30_000,
    execute: async (input, context: ToolContext) => {
      const { name, path, offset } = input as { name: string; path?: string; offset?: number }
      // The schema has been checked, and names each of them.
      const { skill, rules } = known.get(name) as { readonly skill: Skill; readonly rules: FolderRules }
      if (path !== undefined) return await readFile(rules, { path, ...(offset && { offset }) }, context)
      return await readWholeSkill(skill, rules, offset, showFolders, context)
    },
  })
  const instructions = [
    `# Skills`,
    `A skill holds instructions for one kind of task. When a task fits one of these, read the skill with ${toolName} first, and follow it.`,
    ...list.map(({ name, description }) => `- ${name}: ${description}`),
  ].join('\n')
  return { list, instructions, tool }
}

/** The instructions of a skill, and the names of its other files. Instructions that do not fit are shown by lines. */
async function readWholeSkill(
  { name, folder }: Skill,
  rules: FolderRules,
  offset: number | undefined,
  showFolders: boolean,
  context: ToolContext,
): Promise<string> {
  const { text } = await readText(rules, skillFile, context)
  const body = text.slice(findHead(text)?.end ?? 0).trim()
  if (offset !== undefined || Buffer.byteLength(body) > rules.maxBytes) {
    return await readFile(rules, { path: skillFile, ...(offset && { offset }) }, context)
  }
  const found = await findFiles(rules, { glob: '**/*' }, context)
  const files = found
    .split('\n')
    .slice(1)
    .filter((file) => file !== skillFile)
  return [
    `Skill ${name}:`,
    ...(showFolders ? [`Its folder is ${folder}`] : []),
    ...(files.length > 0
      ? [`Its other files, to be read with path:`, ...files.map((file) => `- ${file}`)]
      : []),
    '',
    body,
  ].join('\n')
}

const maxHeadBytes = 64 * 1024
const maxName = 64
const maxDescription = 1_024
const fence = /^---[ \t]*\r?\n/

/** Reads the head of a `SKILL.md`, as the Agent Skills format has it. Throws `ConfigurationError`. */
function readSkillHead(path: string, folderName: string): Omit<Skill, 'folder'> {
  const head = findHead(readBeginning(path))
  if (head === undefined) {
    throw createFault(
      path,
      `it does not begin with a head between two lines of --- within ${maxHeadBytes} bytes`,
    )
  }
  let parsed: unknown
  try {
    parsed = parse(head.yaml, { maxAliasCount: 0 })
  } catch (error) {
    const line = error instanceof YAMLParseError ? error.message.split('\n')[0] : String(error)
    throw createFault(path, `its head is not YAML: ${line}`)
  }
  if (option.anyObject(parsed) !== undefined)
    throw createFault(path, 'its head has to hold name: and description:')
  const { name, description } = parsed as Readonly<Record<string, unknown>>
  if (typeof name !== 'string' || name.length > maxName || !/^[a-z0-9]+(?:-[a-z0-9]+)*$/.test(name)) {
    throw createFault(
      path,
      `its name has to be up to ${maxName} small letters, digits and single hyphens, as in pdf-forms`,
    )
  }
  if (name !== folderName) {
    throw createFault(
      path,
      `its name is ${name}, and its folder is called ${JSON.stringify(folderName)}. Call both the same`,
    )
  }
  const text =
    typeof description === 'string' ? toVisibleText(description).replaceAll(/\s+/g, ' ').trim() : ''
  if (text === '' || text.length > maxDescription) {
    throw createFault(
      path,
      `its description has to be a text of 1 to ${maxDescription} characters that says what the skill does and when to use it`,
    )
  }
  return { name, description: text }
}

function findHead(text: string): { readonly yaml: string; readonly end: number } | undefined {
  const start = fence.exec(text)?.[0].length
  if (start === undefined) return undefined
  const close = /(?:^|\n)---[ \t]*(?:\r?\n|$)/.exec(text.slice(start))
  if (close === null) return undefined
  return { yaml: text.slice(start, start + close.index), end: start + close.index + close[0].length }
}

function readBeginning(path: string): string {
  try {
    if (statSync(path).isFile())
      return readFileSync(path)
        .toString('utf8', 0, maxHeadBytes)
        .replace(/^\ufeff/, '')
  } catch (error) {
    throw createFault(path, `it cannot be read (${String(error)})`)
  }
  throw createFault(path, 'it is not a file')
}

function createFault(path: string, what: string): ConfigurationError {
  return new ConfigurationError(`skills: ${path} is not a skill: ${what}.`)
}

/** A skill: a folder with a `SKILL.md`, and what its head says. */
export interface Skill {
  readonly name: string
  /** Its purpose and when to use it: one line. */
  readonly description: string
  /** The folder, links resolved. */
  readonly folder: string
}

const skillFile = 'SKILL.md'

/**
 * Finds skills: each path is the folder of one skill, or a folder of such folders. They come by name. Throws
 * `ConfigurationError` for a path without a skill, and for two skills of one name.
 */
function findSkills(paths: readonly string[]): readonly Skill[] {
  const skills = new Map<string, Skill>()
  for (const folder of paths.flatMap(findSkillFolders)) {
    const skill = {
      ...readSkillHead(join(folder, skillFile), basename(folder)),
      folder: realpathSync.native(folder),
    }
    const other = skills.get(skill.name)
    if (other !== undefined && other.folder !== skill.folder) {
      throw new ConfigurationError(
        `skills: two skills have the name ${skill.name}: ${other.folder} and ${skill.folder}. Rename one of them, or leave it out.`,
      )
    }
    skills.set(skill.name, skill)
  }
  return [...skills.values()].toSorted((one, other) => (one.name < other.name ? -1 : 1))
}

function findSkillFolders(path: string): readonly string[] {
  let folder: string
  let names: readonly string[]
  try {
    folder = realpathSync.native(path)
    names = readdirSync(folder)
  } catch (error) {
    throw new ConfigurationError(
      `skills: from is ${JSON.stringify(path)}, which is not a folder that can be read. Give the folder of your skills.`,
      { cause: error },
    )
  }
  if (existsSync(join(folder, skillFile))) return [folder]
  const folders = names
    .filter((name) => !name.startsWith('.'))
    .map((name) => join(folder, name))
    .filter((below) => existsSync(join(below, skillFile)))
  if (folders.length > 0) return folders
  throw new ConfigurationError(
    `skills: there is no skill in ${folder}. A skill is a folder with a ${skillFile}; give it, or the folder that holds it.`,
  )
}
