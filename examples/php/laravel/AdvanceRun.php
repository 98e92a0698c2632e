<?php

declare(strict_types=1);

namespace App\Jobs;

use App\Services\BackOffice;
use Illuminate\Bus\Queueable;
use Illuminate\Contracts\Queue\ShouldQueue;
use Illuminate\Foundation\Bus\Dispatchable;
use Illuminate\Queue\InteractsWithQueue;

/** Does what a run asks for. Dispatch it after a start and after a decision; if a worker dies, a retry loses nothing. */
final class AdvanceRun implements ShouldQueue
{
    use Dispatchable;
    use InteractsWithQueue;
    use Queueable;

    public int $tries = 5;

    public function __construct(private readonly string $runId)
    {
    }

    public function handle(BackOffice $backOffice): void
    {
        $backOffice->advance($this->runId);
    }
}
