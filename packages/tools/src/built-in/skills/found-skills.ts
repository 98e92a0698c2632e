import { existsSync, readdirSync, realpathSync } from 'node:fs'
import { basename, join } from 'node:path'
import { ConfigurationError } from '@tallystick/core'
import { readSkillHead, type SkillHead } from './skill-file.ts'

/** A skill: a folder with a `SKILL.md`, and what its head says. */
export interface Skill extends SkillHead {
  /** The folder, links resolved. */
  readonly folder: string
}

/** The name of the file that makes a folder a skill. */
export const skillFile = 'SKILL.md'

/**
 * Finds skills: each path is the folder of one skill, or a folder of such folders. They come by name. Throws
 * `ConfigurationError` for a path without a skill, and for two skills of one name.
 */
export function foundSkills(paths: readonly string[]): readonly Skill[] {
  const skills = new Map<string, Skill>()
  for (const folder of paths.flatMap(skillFolders)) {
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

function skillFolders(path: string): readonly string[] {
  const folder = realFolder(path)
  if (existsSync(join(folder, skillFile))) return [folder]
  const folders = readdirSync(folder)
    .filter((name) => !name.startsWith('.'))
    .map((name) => join(folder, name))
    .filter((below) => existsSync(join(below, skillFile)))
  if (folders.length > 0) return folders
  throw new ConfigurationError(
    `skills: there is no skill in ${folder}. A skill is a folder with a ${skillFile}; give it, or the folder that holds it.`,
  )
}

function realFolder(path: string): string {
  try {
    const real = realpathSync.native(path)
    readdirSync(real)
    return real
  } catch (error) {
    throw new ConfigurationError(
      `skills: from is ${JSON.stringify(path)}, which is no folder that can be read. Give the folder of your skills.`,
      { cause: error },
    )
  }
}
