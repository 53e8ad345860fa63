// Package databases runs database servers for tests, as internal/servers runs PostgreSQL: MariaDB, Redis, etcd, and
// pgbouncer before PostgreSQL; and does harm to a PostgreSQL.
package databases

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/isowatch/isowatch/internal/servers"
)

// Missing says what is not installed of what a server by this name takes: postgres, mariadb, galera, redis, etcd,
// pgbouncer; nil: all is there.
func Missing(server string) error {
	var err error
	switch server {
	case "postgres":
		_, err = servers.Initdb()
	case "mariadb", "galera":
		if _, err = servers.Find("mariadb-install-db", mariaDBInstall); err == nil && server == "galera" &&
			!exists(galeraLibrary) {
			err = &servers.MissingError{Program: "Galera", Install: mariaDBInstall}
		}
	case "redis":
		_, err = servers.Find("redis-server", redisInstall)
	case "etcd":
		_, err = servers.Find("etcd", etcdInstall)
	case "pgbouncer":
		_, err = servers.Find("pgbouncer", pgBouncerInstall, "/usr/sbin")
	default:
		err = fmt.Errorf("there is no server %q", server)
	}
	return err
}

// exists tells whether a file is there.
func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
