import type * as anthropicSdk from '@anthropic-ai/sdk'
import { optionalPackage, type OptionalPackage } from '../../shared/client/optional-package.ts'

/** The official SDK. */
export const sdk: OptionalPackage<typeof anthropicSdk> = optionalPackage(
  '@anthropic-ai/sdk',
  () => import('@anthropic-ai/sdk'),
)
