"""pip compiles the package from the tree, without a build directory of it."""

import os

import package_test

TREE = os.path.dirname(package_test.SOURCE)
# What does not belong to the sources, and what setUp() has copied.
LEFT_OUT = (".git", "build", "python")


class PackageFromSourceTest(package_test.PackageCase):

    def test_pip_compiles_it_and_it_trains(self):
        os.remove(self.path("build"))
        del self.env["LOCKSTEP_BUILD_DIR"]
        for name in os.listdir(TREE):
            if name not in LEFT_OUT:
                os.symlink(os.path.join(TREE, name), self.path(name))
        self.installs_and_trains()


if __name__ == "__main__":
    package_test.main()
