import { relative } from 'node:path'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { longest } from './selection.ts'

/** Begins with the files of `longest`, in each project, and continues as vitest does. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const { root } = this.ctx.config
    const rank = ({ moduleId }: TestSpecification): number => {
      const place = longest.indexOf(relative(root, moduleId).replaceAll('\\', '/'))
      return place < 0 ? longest.length : place
    }
    const sorted = await super.sort(files)
    const byProject = Map.groupBy(sorted, ({ project }) => project.name)
    return [...byProject.values()].flatMap((some) => some.toSorted((a, b) => rank(a) - rank(b)))
  }
}
