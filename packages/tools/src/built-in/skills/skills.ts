import { ConfigurationError, type Tool } from '@tallystick/core'
import { option, requireOptions } from '@tallystick/core/kit'
import { defineTool } from '../../definition/define-tool.ts'
import type { ToolContext } from '../../execution/executor.ts'
import { shownNames } from '../files/names/shown-names.ts'
import { rootAt } from '../files/root/root.ts'
import { bytesOf } from '../files/text/amounts.ts'
import { findFiles } from '../files/tools/find-files.ts'
import { type FolderRules, readText } from '../files/tools/folder-rules.ts'
import { readFile } from '../files/tools/read-file.ts'
import { foundSkills, type Skill, skillFile } from './found-skills.ts'
import { skillBody } from './skill-file.ts'

export type { Skill } from './found-skills.ts'

/** Where skills are, and how much of one a call may show. */
export interface SkillsOptions {
  /** Folders of skills, or folders that hold such folders. */
  readonly from: string | readonly string[]
  /** The skills that are used, by name. Default: all. */
  readonly only?: readonly string[] | undefined
  /** The name of the tool. Default `read_skill`. */
  readonly toolName?: string | undefined
  /**
   * Whether the tool says where the folder of a skill is, so that a tool which runs programs finds its scripts. Default
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
    from: (value, path) => (typeof value === 'string' ? filledText : listOf(filledText))(value, path),
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
  const list = chosen(foundSkills([from].flat()), only)
  if (list.length === 0) {
    throw new ConfigurationError(
      'skills: no folder or no name was given, so there is no skill. Give at least one of each.',
    )
  }
  const known = new Map(list.map((skill) => [skill.name, { skill, rules: rulesOf(skill.folder, maxBytes) }]))
  const tool = defineTool({
    name: toolName,
    description:
      'Reads a skill: instructions for one kind of task. Read the skill before such a task. With path it reads another file of the skill, where its instructions name one.',
    input: inputOf(list),
    effect: 'read',
    timeoutMs: 30_000,
    execute: async (input, context: ToolContext) => {
      const { name, path, offset } = input as ReadSkillInput
      // The schema has been checked, and names each of them.
      const { skill, rules } = known.get(name) as { readonly skill: Skill; readonly rules: FolderRules }
      if (path !== undefined) return await readFile(rules, { path, ...(offset && { offset }) }, context)
      return await wholeSkill(skill, rules, { offset, showFolders, context })
    },
  })
  return { list, instructions: instructionsOf(list, toolName), tool }
}

interface ReadSkillInput {
  readonly name: string
  readonly path?: string
  readonly offset?: number
}

function inputOf(list: readonly Skill[]): Parameters<typeof defineTool>[0]['input'] {
  return {
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
  }
}

function rulesOf(folder: string, maxBytes: number): FolderRules {
  return {
    root: rootAt('skills', folder, shownNames('skills', ['node_modules/'], false)),
    ...{ maxBytes, maxFileBytes: 10_000_000, maxEntries: 200, maxVisited: 10_000 },
  }
}

/** The instructions of a skill, and the names of its other files. Instructions that do not fit are shown by lines. */
async function wholeSkill(
  { name, folder }: Skill,
  rules: FolderRules,
  {
    offset,
    showFolders,
    context,
  }: { readonly offset?: number | undefined; readonly showFolders: boolean; readonly context: ToolContext },
): Promise<string> {
  const { text } = await readText(rules, skillFile, context)
  const body = skillBody(text)
  if (offset !== undefined || bytesOf(body) > rules.maxBytes) {
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

function instructionsOf(list: readonly Skill[], toolName: string): string {
  const lines = list.map(({ name, description }) => `- ${name}: ${description}`)
  return [
    `# Skills`,
    `A skill holds instructions for one kind of task. When a task fits one of these, read the skill with ${toolName} first, and follow it.`,
    ...lines,
  ].join('\n')
}

function chosen(found: readonly Skill[], only: readonly string[] | undefined): readonly Skill[] {
  if (only === undefined) return found
  const names = found.map(({ name }) => name)
  requireOptions('skills', listOf(option.oneOf(names)), only, 'only')
  return found.filter(({ name }) => only.includes(name))
}
