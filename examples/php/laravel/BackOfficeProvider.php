<?php

declare(strict_types=1);

namespace App\Providers;

use App\Services\BackOffice;
use Illuminate\Contracts\Foundation\Application;
use Illuminate\Support\ServiceProvider;
use Tallystick;

/** Registers the service as a singleton. */
final class BackOfficeProvider extends ServiceProvider
{
    public function register(): void
    {
        $this->app->singleton(BackOffice::class, fn (Application $app): BackOffice => new BackOffice(
            new Tallystick(config('services.tallystick.url'), config('services.tallystick.token')),
            config('services.tallystick.tools'),
        ));
    }
}
