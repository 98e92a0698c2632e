import type * as ollamaClient from 'ollama/browser'
import { optionalPackage, type OptionalPackage } from '../../shared/client/optional-package.ts'

/**
 * The official client. Not the package's root: there a text that names a file is taken for an image's path, and the file
 * goes out.
 */
export const sdk: OptionalPackage<typeof ollamaClient> = optionalPackage(
  'ollama',
  () => import('ollama/browser'),
)
