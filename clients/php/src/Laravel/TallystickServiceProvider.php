<?php

declare(strict_types=1);

namespace Tallystick\Laravel;

use Illuminate\Contracts\Container\Container;
use Illuminate\Support\ServiceProvider;
use Tallystick\Client;
use Tallystick\Worker;

/**
 * Registers the client and a worker from `config/services.php`: `'tallystick' => ['url' => …, 'token' => …, 'tools' => [name => class]]`.
 * A tool's class is made by the container and called with the input and the id of the call.
 */
final class TallystickServiceProvider extends ServiceProvider
{
    public function register(): void
    {
        $this->app->singleton(Client::class, function (Container $app): Client {
            $config = $app->make('config');
            return Client::withGuzzle($config->get('services.tallystick.url'), $config->get('services.tallystick.token'));
        });
        $this->app->singleton(Worker::class, function (Container $app): Worker {
            $tools = array_map(
                fn (string $class): callable => fn (array $input, string $callId): string => ($app->make($class))($input, $callId),
                $app->make('config')->get('services.tallystick.tools', []),
            );
            return new Worker($app->make(Client::class), $tools);
        });
    }
}
